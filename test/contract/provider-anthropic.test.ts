import { openMessages } from "../fakes/anthropic-server.ts";
import { providerSuite } from "./provider-suite.ts";

providerSuite("anthropic", {
  open: openMessages,
  lacks: { hold: "its API holds no reply to a schema beside tools" },
});
