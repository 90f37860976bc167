import type { Limits } from "../agent/limits.ts";
import type { Config } from "../config/load-config.ts";
import type { Settings } from "../config/settings-schema.ts";
import type { EventBody, Intent } from "../core/events.ts";
import type { Parked, Session, SessionStore } from "../core/session.ts";

/** How it is played, beside the settings. */
export interface PlayFlags {
  readonly intent?: Intent | undefined;
  readonly "output-schema"?: string | undefined;
  readonly strict: boolean;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly passing?: boolean;
  readonly runtime?: string | undefined;
}

export interface Play {
  readonly settings: Settings;
  /** Who set each of them. */
  readonly origins: Config["origins"];
  readonly flags: PlayFlags;
  readonly limits: Limits;
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly prompt: string;
  readonly signal: AbortSignal;
  /** The run was parked, and goes on. */
  readonly reprise?: Reprise;
}

export interface Reprise {
  readonly parked: Parked;
  /** Writes down what a person said, once there is a box to go on in; throws where somebody else was first. */
  readonly claim: () => Promise<{ readonly event: Approval; readonly runs: boolean }>;
}

type Approval = Extract<EventBody, { readonly type: "approval" }>;
