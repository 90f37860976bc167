import { hostsOf } from "../hosts.ts";
import type { Arg, Found, Use } from "../model.ts";
import { downloads } from "./downloads.ts";
import { given, part, reachesAnyway, reading, valuesOf, writing } from "./parts.ts";

/** What the table of curl cannot say. */
export const curlEffects = (use: Use): readonly Found[] => [
  ...reachesAnyway(use),
  ...sentFiles(use),
  ...otherHosts(use),
  ...[...use.operands, ...valuesOf(use, "--url")].flatMap((address) => localFile(address, use)),
  ...saved(use),
];

/** Options whose value is a file when it begins so. */
const SENT: readonly (readonly [options: readonly string[], file: RegExp])[] = [
  [
    ["-d", "--data", "--data-ascii", "--data-binary", "--json", "-H", "--header", "--proxy-header"],
    /^@(.+)$/,
  ],
  [["-w", "--write-out", "--variable"], /^(?:%?[^@=]*)?@(.+)$/],
  [["--data-urlencode", "--url-query"], /^[^=@]*@(.+)$/],
  [["-F", "--form"], /^[^=]*=[@<]"?([^;",]+)/],
  // A name without an equals sign is a file of cookies.
  [["-b", "--cookie"], /^([^=]+)$/],
  [["--pinnedpubkey", "--proxy-pinnedpubkey"], /^(?!sha256\/\/)(.+)$/],
];

const sentFiles = (use: Use): readonly Found[] =>
  SENT.flatMap(([options, file]) =>
    valuesOf(use, ...options).flatMap((value) => {
      const path = file.exec(value.value)?.[1];
      return path === undefined || path === "-" ? [] : [reading(part(value, path), use)];
    }),
  );

/** `--connect-to HOST1:PORT1:HOST2:PORT2` and `--resolve HOST:PORT:ADDRESS`: another host than the address says. */
const otherHosts = (use: Use): readonly Found[] =>
  valuesOf(use, "--connect-to", "--resolve").map((value): Found => {
    const [, host] = /^[^:]*:[^:]*:(\[[^\]]*\]|[^:,]*)/.exec(value.value) ?? [];
    return { kind: "network", hosts: host === undefined ? [] : hostsOf(part(value, host)), span: value.span };
  });

function localFile(address: Arg, use: Use): readonly Found[] {
  const path = /^file:\/\/?(?:localhost|127\.0\.0\.1)?(\/.*)$/i.exec(address.value)?.[1];
  return path === undefined ? [] : [reading(part(address, path), use)];
}

/** Files named after the address, and where `--output-dir` puts those that are named. */
function saved(use: Use): readonly Found[] {
  const folder = valuesOf(use, "--output-dir").at(-1);
  const named = given(use, "-O", "--remote-name", "--remote-name-all", "-J", "--remote-header-name");
  const addresses = [...use.operands, ...valuesOf(use, "--url")];
  const headers = given(use, "-J", "--remote-header-name");
  return [
    ...(named ? downloads(use, headers ? [] : addresses, folder) : []),
    ...(folder === undefined
      ? []
      : valuesOf(use, "-o", "--output").map((file) =>
          writing(part(file, `${folder.value}/${file.value}`), use),
        )),
  ];
}
