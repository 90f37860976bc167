import { rm } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent, Recorded } from "../../core/events.ts";
import type { Session } from "../../core/session.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import type { Proposal } from "../../policy/propose-policy.ts";
import type { Host } from "../host.ts";
import { workspacePolicy } from "./policy-context.ts";
import { makeFolder } from "../../platform/folders.ts";

/** The policy and the grants that would have sufficed for sessions, derived from their records. */

export interface Proposed {
  readonly proposal: Proposal;
  /** A file of rules. */
  readonly text: string;
  /** Lines for `harness policy test`. */
  readonly examples: string;
}

/** All runs of all given sessions together, which must be of one workspace. */
export async function proposedFor(host: Host, sessions: readonly Session[]): Promise<Proposed> {
  const [{ recordingOf }, { proposePolicy }, { proposalText }] = await Promise.all([
    import("../../policy/propose-grants.ts"),
    import("../../policy/propose-policy.ts"),
    import("../../policy/propose-policy.ts"),
  ]);
  const recording = recordingOf(eventsOf(sessions));
  const [workspace = "", ...others] = recording.workspaces;
  if (others.length > 0)
    throw new HarnessError(
      EXIT.usage,
      `these sessions belong to several folders: ${[workspace, ...others].join(", ")}`,
      "harness policy propose ID   (sessions of one folder at a time)",
    );
  const proposal = proposePolicy(recording, await workspacePolicy(host, workspace));
  const examples = proposal.examples.map((each) => `${JSON.stringify(each)}\n`).join("");
  const text = proposalText(
    proposal,
    sessions.map(({ id }) => id),
  );
  return { proposal, text, examples };
}

function* eventsOf(sessions: readonly Session[]): Generator<AgentEvent> {
  for (const session of sessions) yield* session.events();
}

/** Writes the proposal next to the sessions, never into a workspace. */
export async function writeProposal(host: Host, session: Session): Promise<Recorded> {
  const { proposal, text, examples } = await proposedFor(host, [session]);
  const files = filesOf(host, session.id);
  makeFolder(path.dirname(files.policy));
  await replaceFile(files.policy, text, { lasts: "content" });
  await replaceFile(files.examples, examples, { lasts: "content" });
  const { rules, allow_domains, left, refused } = proposal;
  return { ...files, rules: rules.length, allow_domains, left: left.length, refused: refused.length };
}

export async function removeProposal(host: Host, session: string): Promise<void> {
  for (const file of Object.values(filesOf(host, session))) await rm(file, { force: true });
}

const filesOf = ({ places }: Host, session: string): Pick<Recorded, "policy" | "examples"> => {
  const at = path.join(places.state, "proposals", session);
  return { policy: `${at}.toml`, examples: `${at}.jsonl` };
};
