import type { Effect } from "./effect.ts";

/** An effect in words, for display. */
export function effectText(effect: Effect): string {
  return `${effect.by}: ${deed(effect)}`;
}

const at = (path: string | null): string => path ?? "a path known only at run time";

function deed(effect: Effect): string {
  switch (effect.kind) {
    case "read":
    case "write":
      return `${effect.kind}s ${at(effect.path)}`;
    case "delete":
      return `deletes ${at(effect.path)}${effect.recursive ? " and everything below it" : ""}`;
    case "permissions":
      return `changes the permissions of ${at(effect.path)}${effect.recursive ? " and everything below it" : ""}`;
    case "device":
      return `writes to the device ${at(effect.path)}`;
    case "code":
      return `runs ${CODE[effect.from]}${effect.path === null ? "" : ` in ${effect.path}`}`;
    case "network":
      return effect.hosts.length === 0 ? "reaches the network" : `reaches ${effect.hosts.join(", ")}`;
    case "install":
      return `installs packages (${effect.what})`;
    case "repository":
      return `changes the repository: ${effect.change} (${effect.what})`;
    case "process":
      return "acts on other processes";
    case "system":
      return "acts on the system";
    case "privilege":
      return "requests more privileges";
    case "bomb":
      return "starts itself endlessly";
    case "unknown":
      return `not understood: ${effect.doubt} (${effect.what})`;
  }
}

const CODE: Readonly<Record<Extract<Effect, { readonly kind: "code" }>["from"], string>> = {
  check: "the project's checks",
  settings: "what the settings specify",
  project: "code",
  inline: "a program given on the command line",
  input: "a program from stdin",
  fetched: "downloaded code",
};
