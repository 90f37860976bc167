import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type GrantSaid, installs } from "../../core/network.ts";
import { grantsOf } from "../granted-network.ts";
import type { HarnessRequests } from "../harness-requests.ts";
import type { Host } from "../host.ts";
import type { LazyBox } from "./lazy-box.ts";

interface GrantParts {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly box: Pick<LazyBox, "network" | "countPackages">;
  /** Grants also apply to the harness's own requests. */
  readonly requests: Pick<HarnessRequests, "grant">;
  readonly warn: (text: string) => void;
  /** Keeps a grant that lasts longer than a call. */
  readonly keep: (said: GrantSaid) => Promise<void>;
}

/** What may be reached while a person answers questions: the grants of the settings, and those that the person adds. */
export class SessionGrants {
  readonly #parts: GrantParts;
  #domains: readonly string[];

  constructor(parts: GrantParts) {
    this.#parts = parts;
    this.#domains = parts.settings.allow_domains;
  }

  /** A new list whenever something was added, and the same list until then. */
  readonly domains = (): readonly string[] => this.#domains;

  /** Resolves when the running box has the grant; the returned function withdraws it. */
  readonly grant = async (said: GrantSaid, signal: AbortSignal): Promise<() => void> => {
    const { box, requests, keep } = this.#parts;
    const fresh = said.domains.filter((each) => !this.#domains.includes(each));
    if (fresh.length === 0) return () => undefined;
    const { grants, variables, files } = await grantsOf(fresh, this.#parts, signal);
    const network = await box.network();
    if (network === undefined) throw new HarnessError(EXIT.sandbox, NO_WAY, NEXT);
    if (fresh.some(installs) && !this.#domains.some(installs)) await box.countPackages(signal);
    const ofBox = await network.grant(grants, variables, files);
    const ofHarness = requests.grant(grants);
    const withdraw = (): void => {
      ofBox();
      ofHarness();
    };
    if (said.for === "call") return withdraw;
    this.#domains = [...new Set([...this.#domains, ...fresh])];
    await keep({ ...said, domains: fresh });
    return withdraw;
  };
}

const NO_WAY =
  "a box with full access, or one that was started without support for grants, cannot be granted hosts while it runs";
const NEXT = "run it again with --allow-domain";
