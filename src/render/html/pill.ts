import type { Worded } from "../report/words.ts";
import { type Html, markup } from "./escape.ts";

/** The colour only repeats what the words say. */
export const pill = ({ tone, text }: Worded): Html => markup`<span class="pill ${tone}">${text}</span>`;
