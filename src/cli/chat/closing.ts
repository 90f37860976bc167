import type { Finished } from "../../agent/run.ts";
import { wrapped, widthOfStream } from "../../render/tty/fitted.ts";
import { type Output, styleText } from "../../render/tty/output.ts";

const BACK = "the conversation is as it was; what finished calls have changed in files stays";

/** What a person is told at the end of a request that came to no answer; empty where everything is on the screen. */
export function closing({ status, reason, tool_calls }: Finished, stream: Output): string {
  switch (status) {
    case "done":
    case "refused":
      return "";
    case "interrupted":
      return lines("~", tool_calls === 0 ? "cancelled" : `cancelled: ${BACK}`, stream);
    case "budget":
      return lines("!", `${reason} Say "go on" to go on.`, stream);
    default:
      return lines("✗", reason, stream);
  }
}

const lines = (mark: string, text: string, stream: Output): string =>
  wrapped(`${mark} ${text}`, widthOfStream(stream))
    .map((line) => `${styleText(mark === "✗" ? "red" : "yellow", line, { stream })}\n`)
    .join("");
