import type { Place } from "../effects/effect.ts";
import { hostsOf } from "./hosts.ts";
import type { Arg, Fixed, Found, Role, Use } from "./model.ts";

export interface Weight {
  readonly forced: boolean;
  readonly recursive: boolean;
}

/** What an argument of this role does. `command` takes all that follow and is not asked here. */
export function roleEffects(
  role: Exclude<Role, "command">,
  arg: Arg,
  use: Use,
  weight: Weight,
): readonly Found[] {
  const { span } = arg;
  switch (role) {
    case "data":
    case "pattern":
      return [];
    case "read":
    case "in":
      return isStdio(arg) ? [] : [{ kind: "read", path: use.place(arg), span }, ...fetched(arg)];
    case "target":
      return [{ kind: "write", path: use.place(arg), span }];
    case "write":
      return isStdio(arg) ? [] : [{ kind: "write", path: use.place(arg), span }];
    case "delete":
    case "tree":
      return [
        {
          kind: "delete",
          path: use.place(arg),
          forced: weight.forced,
          recursive: role === "tree" || weight.recursive,
          span,
        },
      ];
    case "permissions":
      return [{ kind: "permissions", path: use.place(arg), recursive: weight.recursive, span }];
    case "host":
      return [{ kind: "network", hosts: hostsOf(arg), span }];
    case "check":
      return checkEffects(arg, use);
    case "code":
      return [use.doubt("language.unknown", arg)];
    case "loads":
      return [use.doubt("option.loads-code", arg)];
    case "project":
      return [{ kind: "code", from: "project", path: use.place(arg), span }];
    case "shell":
      return use.shell(arg);
  }
}

/** What looks like an option here stands behind `--`: it may be one again for what the program runs. */
function checkEffects(arg: Arg, use: Use): readonly Found[] {
  if (isStdio(arg)) return [];
  const { span } = arg;
  const path = use.place(arg);
  return [
    ...(arg.value.startsWith("-") ? [use.doubt("operand.unknown", arg)] : []),
    { kind: "read", path, span },
    { kind: "code", from: "check", path, span },
    ...fetched(arg),
  ];
}

/** What is named by its address instead of a path. */
const fetched = (arg: Arg): readonly Found[] =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(arg.value)
    ? [{ kind: "network", hosts: hostsOf(arg), span: arg.span }]
    : [];

/** A lone `-` is stdin or stdout. */
const isStdio = ({ kind, value }: Arg): boolean => value === "-" && kind === "literal";

export function fixedEffect(fixed: Fixed, folder: Place, what: string): Found {
  switch (fixed) {
    case "network":
      return { kind: "network", hosts: [] };
    case "install":
    case "process":
    case "privilege":
    case "system":
      return { kind: fixed, what };
    case "settings":
    case "check":
    case "project":
      return { kind: "code", from: fixed, path: folder };
    case "input":
      return { kind: "code", from: "input", path: null };
    case "ask":
      return { kind: "unknown", doubt: what.startsWith("-") ? "option.unknown" : "command.unfollowed", what };
    default:
      return { kind: "repository", change: fixed, what };
  }
}
