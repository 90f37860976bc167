import { hostsOf } from "./argument-roles.ts";
import { downloads } from "./curl-wget.ts";
import { given, networkTo, part, reachesAnyway, reading, valuesOf, writing } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";
import { copied, named as elsewhere, emptied, named as podPart } from "./ssh-programs.ts";

function sent(use: Use): readonly Found[] {
  return valuesOf(use, "-f", "--filename")
    .filter(({ value }) => value !== "-")
    .map((file) =>
      file.value.includes("://") ? networkTo(file) : { kind: "read", path: use.place(file), span: file.span },
    );
}

function moved(use: Use): readonly Found[] {
  const empties =
    given(use, "--delete", "--delete-unmatched-destination-objects", "-d") ||
    / (?:sync|bisync)$/.test(use.program);
  return [...copied(use, elsewhere), ...(empties ? emptied(use, elsewhere) : [])];
}

/** `name=@file`, `name:=@file`, `name@file`, `Header:@file`: the file is sent. */
const SENT = /^[^=@:]*(?::?=@|:@|@)(.+)$/;

/** The first operand, or the one after a method, is the address; all others are fields. */
function request(use: Use): readonly Found[] {
  const [first, ...rest] = use.operands;
  const method = first !== undefined && /^[A-Z]+$/.test(first.value);
  const address = method ? rest[0] : first;
  const fields = method ? rest.slice(1) : rest;
  const sessions = valuesOf(use, "--session", "--session-read-only");
  return [
    { kind: "network", hosts: address === undefined ? [] : hostOf(address) },
    ...fields.flatMap((field) => {
      const file = SENT.exec(field.value)?.[1];
      return file === undefined ? [] : [reading(part(field, file.replace(/;type=.*$/, "")), use)];
    }),
    ...(given(use, "-d", "--download") && !given(use, "-o", "--output")
      ? downloads(use, address === undefined ? [] : [address])
      : []),
    ...sessions.filter(({ value }) => value.includes("/")).map((file) => writing(file, use)),
  ];
}

/** `:3000/path` is this machine. */
const hostOf = (address: Arg): readonly string[] =>
  address.value.startsWith(":") ? ["localhost"] : hostsOf(address);
/** The readers of this file, by the names that rows use. */
export const NETWORK_READERS: Readonly<Record<string, Reader>> = {
  http: request,
  "yt-dlp": (use) => [
    ...reachesAnyway(use),
    ...(given(use, "-o", "--output", "-P", "--paths") ? [] : downloads(use, [])),
  ],
  "kubectl version": (use) => {
    const value = use.options.find(({ name }) => name === "--client")?.value?.value;
    return given(use, "--client") && (value ?? "true") === "true" ? [] : [{ kind: "network", hosts: [] }];
  },
  "kubectl files": sent,
  "kubectl cp": (use) => copied(use, podPart),
  "helm lint": (use) =>
    valuesOf(use, "-f", "--values")
      .filter(({ value }) => value.includes("://"))
      .map(networkTo),
  "bucket copies": moved,
};
