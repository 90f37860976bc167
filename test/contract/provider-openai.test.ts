import { openChat } from "../fakes/openai-server.ts";
import { providerSuite } from "./provider-suite.ts";

providerSuite("openai", { open: openChat });
