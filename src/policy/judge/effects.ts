import type { Effect } from "../effects/effect.ts";
import { codeRuling, type CodeEffect } from "./code.ts";
import { doubtRuling } from "./doubts.ts";
import { type PathEffect, pathRuling, type Places } from "./files.ts";
import { repositoryRuling } from "./repository.ts";
import { ASKED, CONTAINED, DENIED, type Ruling, type Worth } from "./ruling.ts";

/** The rule that an effect falls under. */
export function rulingOf(effect: Effect, places: Places): Ruling {
  const { span } = effect;
  return { span, ...kindRuling(effect, places) };
}

export type Rule = Omit<Ruling, "span">;

function kindRuling(effect: Effect, places: Places): Rule {
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
    case "device":
      return pathRuling(effect satisfies PathEffect, places);
    case "code":
      return codeRuling(effect satisfies CodeEffect, places);
    case "repository":
      return repositoryRuling(effect);
    case "unknown":
      return doubtRuling(effect);
    case "network":
      return networkRule(effect);
    case "install":
      return rule(
        "install",
        `${effect.what} installs packages: it downloads them and may run their scripts`,
        ASKED,
      );
    case "process":
      return rule(
        "process",
        `${effect.what} acts on other processes`,
        effect.inside === true ? CONTAINED : ASKED,
      );
    case "system":
      return rule(
        "system",
        `${effect.what} acts on the system as a whole: its disks, its power or its kernel`,
        DENIED,
      );
    case "privilege":
      return rule("privilege", `${effect.what} asks for more rights than the box gives`, DENIED);
    case "bomb":
      return rule("bomb", "it starts itself again and again", DENIED);
  }
}

const rule = (id: string, reason: string, worth: Worth): Rule => ({ id, reason, ...worth });

/** In a box they are the box itself, which has a loopback of its own. */
const OWN = /^(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1\])$/;

function networkRule({ by, hosts, inside }: Extract<Effect, { readonly kind: "network" }>): Rule {
  if (inside === true)
    return rule("network", `${by} listens, or tells of the network of its own machine`, CONTAINED);
  const own = hosts.length > 0 && hosts.every((host) => OWN.test(host));
  return own
    ? rule("network.own", `${by} asks a server of its own machine${toHosts(hosts)}`, CONTAINED)
    : rule("network", `${by} reaches the network${toHosts(hosts)}`, ASKED);
}

const toHosts = (hosts: readonly string[]): string => (hosts.length === 0 ? "" : `: ${hosts.join(", ")}`);
