import { MAX_TRIES } from "./limits.js";

export const mayTry = (tries) => tries < MAX_TRIES;
