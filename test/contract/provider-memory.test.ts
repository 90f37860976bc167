import { memoryServer } from "../fakes/memory-wire.ts";
import { providerSuite } from "./provider-suite.ts";

providerSuite("wire in memory", { open: memoryServer });
