import type { Found, Model, Use } from "../model.ts";
import { given, gnu } from "../plain.ts";

/** What the differences name lies below the folder where it works: it takes no other names from them. */
function changed(use: Use): readonly Found[] {
  const [file] = use.operands;
  const doubts = use.operands.slice(2).map((arg) => use.doubt("operand.unknown", arg));
  if (file !== undefined) return [...doubts, { kind: "write", path: use.place(file), span: file.span }];
  return given(use, "-o", "--output") ? doubts : [...doubts, { kind: "write", path: use.folder }];
}

/** Scripts of `ed` and other version control it would run. */
export const PATCH: Model = gnu(
  "data read",
  `-bcflnNRstTuvZE -B: -d:in -D: -e!ask -F: -g:loads -i:read -o:write -p: -r:write -V: -x: -Y: -z: --backup --binary --context
  --batch --directory=in --dry-run --ed!ask --fuzz= --force --forward --get=loads --ifdef= --ignore-whitespace --input=read
  --merge=? --no-backup-if-mismatch --normal --output=write --posix --prefix= --quiet --quoting-style= --read-only=
  --reject-file=write --reject-format= --remove-empty-files --reverse --set-time --set-utc --silent --strip= --suffix=
  --unified --verbose --version-control= --follow-symlinks!ask --basename-prefix=`,
  changed,
);
