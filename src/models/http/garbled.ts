import { originOf } from "./post.ts";
import type { Asked } from "./refusals.ts";
import { WireFailure } from "../wire.ts";

/** Failures of servers that answer, but not as any API promises. */

const MAX_SHOWN = 60;
const LOG = "check the server's log and its version";

export const OTHER_JSON = "it answers with JSON of another kind";

/** Something else listens at the address. */
export const stranger = ({ url }: Asked, what: string): WireFailure =>
  new WireFailure("unreachable", `${originOf(url)} is no model server: ${what}`, {
    remedy: "check the address: harness config set base_url URL",
  });

/** The stream ended before the server said that the reply is complete. */
export const brokenOff = (reason = ""): WireFailure =>
  new WireFailure("garbled", `the reply broke off before its end${reason === "" ? "" : ` (${reason})`}`, {
    passing: true,
    remedy: "check the server's log",
  });

/** `what` is the thing that it should be, `text` the one that came. */
export const notA = (what: string, text: string): WireFailure =>
  new WireFailure("garbled", `the server sends what is no ${what}: ${shown(text)}`, {
    passing: true,
    remedy: LOG,
  });

export const shown = (text: string): string => JSON.stringify(text.slice(0, MAX_SHOWN));
