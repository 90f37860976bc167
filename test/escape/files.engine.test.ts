import assert from "node:assert/strict";
import { type Attack, attacks, isThere, never, noToken } from "../fixtures/escape-cases.ts";

const FILES: readonly Attack[] = [
  {
    name: "climb and delete",
    run: "rm -rf ../* ../.[a-z]* 2>/dev/null; rm -rf /tmp/../{CAN} 2>/dev/null; cd / && rm -f .{CAN}/note; true",
    twin: "touch made && rm -f made",
    control: true,
  },
];

attacks(FILES);
void [assert, isThere, never, noToken];
