import { hostsOf } from "./argument-roles.ts";
import { given, part, reachesAnyway, reading, valuesOf, writing } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";

/** The last name in the path of an address; null where the server chooses it. */
const NAME = /^[^/?#]+\/(?:[^?#]*\/)?([^/?#]+)/;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/** Files named after the last name of their addresses, in the folder or the current one. */
export function downloads(use: Use, addresses: readonly Arg[], folder?: Arg): readonly Found[] {
  const here: Arg = folder ?? { kind: "literal", value: ".", span: use.span };
  const names = addresses.flatMap((address) => {
    const name = address.kind === "dynamic" ? undefined : NAME.exec(address.value.replace(SCHEME, ""))?.[1];
    return name === undefined
      ? []
      : [writing(part({ ...here, span: address.span }, `${here.value}/${name}`), use)];
  });
  return names.length === addresses.length && names.length > 0 ? names : [writing(here, use), ...names];
}

/** The files that wget writes. With some options, the server chooses their names. */
function savedByWget(use: Use): readonly Found[] {
  if (given(use, "-O", "--output-document", "--spider")) return [];
  const folder = valuesOf(use, "-P", "--directory-prefix").at(-1);
  const chosen = given(use, ...CHOSEN) || use.operands.length === 0;
  return downloads(use, chosen ? [] : use.operands, folder);
}

/** Options with which the address does not determine the names of files. */
const CHOSEN = [
  "-r",
  "--recursive",
  "-m",
  "--mirror",
  "-p",
  "--page-requisites",
  "-x",
  "--force-directories",
  "-i",
  "--input-file",
  "--content-disposition",
  "--trust-server-names",
  "-e",
  "--execute",
];
const folderOf = (use: Use): ReturnType<typeof valuesOf>[number] | undefined =>
  valuesOf(use, "-d", "--dir").at(-1);

/** Effects of curl that its row cannot express. */
const curlEffects = (use: Use): readonly Found[] => [
  ...reachesAnyway(use),
  ...sentFiles(use),
  ...otherHosts(use),
  ...[...use.operands, ...valuesOf(use, "--url")].flatMap((address) => localFile(address, use)),
  ...savedByCurl(use),
];

/** Options whose value is a file if it starts like this. */
const SENT: readonly (readonly [options: readonly string[], file: RegExp])[] = [
  [
    ["-d", "--data", "--data-ascii", "--data-binary", "--json", "-H", "--header", "--proxy-header"],
    /^@(.+)$/,
  ],
  [["-w", "--write-out", "--variable"], /^(?:%?[^@=]*)?@(.+)$/],
  [["--data-urlencode", "--url-query"], /^[^=@]*@(.+)$/],
  [["-F", "--form"], /^[^=]*=[@<]"?([^;",]+)/],
  // A value without an equals sign is a file of cookies.
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

/**
 * `--connect-to HOST1:PORT1:HOST2:PORT2` and `--resolve HOST:PORT:ADDRESS` connect to another host than the address
 * says.
 */
const otherHosts = (use: Use): readonly Found[] =>
  valuesOf(use, "--connect-to", "--resolve").map((value): Found => {
    const [, host] = /^[^:]*:[^:]*:(\[[^\]]*\]|[^:,]*)/.exec(value.value) ?? [];
    return { kind: "network", hosts: host === undefined ? [] : hostsOf(part(value, host)), span: value.span };
  });

function localFile(address: Arg, use: Use): readonly Found[] {
  const path = /^file:\/\/?(?:localhost|127\.0\.0\.1)?(\/.*)$/i.exec(address.value)?.[1];
  return path === undefined ? [] : [reading(part(address, path), use)];
}

/** Files named after the address, and the folder of `--output-dir`. */
function savedByCurl(use: Use): readonly Found[] {
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

/** The readers of this file, by the names that rows use. */
export const CURL_WGET_READERS: Readonly<Record<string, Reader>> = {
  curl: curlEffects,
  "wget files": savedByWget,
  aria2c: (use) => [
    ...reachesAnyway(use),
    ...downloads(use, given(use, "-o", "--out", "-i", "--input-file") ? [] : use.operands, folderOf(use)),
    ...valuesOf(use, "-o", "--out").flatMap((file) => {
      const folder = folderOf(use);
      return folder === undefined ? [] : [writing({ ...file, value: `${folder.value}/${file.value}` }, use)];
    }),
  ],
  axel: (use) => [
    ...reachesAnyway(use),
    ...(given(use, "-o", "--output") ? [] : downloads(use, use.operands)),
  ],
};
