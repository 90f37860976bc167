import type { Arg, Found, Use } from "../model.ts";
import { given } from "../plain.ts";

const SHOWS = ["-l", "-v", "-Z", "-p", "-c", "-t"];

/** Without an option that says otherwise it takes files out. `-T` changes the archive. */
export function unzipEffects(use: Use): readonly Found[] {
  const [archive] = use.operands;
  if (archive === undefined) return [];
  const { span } = archive;
  const path = use.place(archive);
  const shows = given(use, ...SHOWS) && !given(use, "-T");
  if (shows) return [{ kind: "read", path, span }];
  const target = use.options.findLast(({ name }) => name === "-d");
  return [
    { kind: "read", path, span },
    ...(given(use, "-T") ? [{ kind: "write", path, span } satisfies Found] : []),
    ...(target === undefined ? [{ kind: "write", path: use.folder, span: use.span } satisfies Found] : []),
  ];
}

/** The archive is written, the rest goes into it, and with `-m` away. */
export function zipEffects(use: Use): readonly Found[] {
  const [archive, ...files] = use.operands;
  if (archive === undefined) return [];
  const moves = given(use, "-m", "-move");
  const stdout = archive.value === "-";
  return [
    ...(stdout ? [] : [{ kind: "write", path: use.place(archive), span: archive.span } satisfies Found]),
    ...files.flatMap((file) => filed(use, file, moves)),
  ];
}

function filed(use: Use, file: Arg, moves: boolean): readonly Found[] {
  const { span } = file;
  const path = use.place(file);
  const gone: Found = { kind: "delete", path, recursive: true, forced: false, span };
  return [{ kind: "read", path, span }, ...(moves ? [gone] : [])];
}
