/** `npm run events-schema`: writes docs/run-events.schema.json from the forms of the events. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { eventForm } from "../src/core/events.ts";

export const SCHEMA_FILE = path.join(import.meta.dirname, "..", "docs", "run-events.schema.json");

/** Fields are added from version to version, so a reader must take those that it does not know. */
export function eventsSchema(): string {
  const { $schema, ...schema } = z.toJSONSchema(eventForm, {
    target: "draft-2020-12",
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  const head = { title: "One line of harness run --json", description: "See docs/run-json.md." };
  return `${JSON.stringify({ $schema, ...head, ...schema }, null, 2)}\n`;
}

if (import.meta.main) writeFileSync(SCHEMA_FILE, eventsSchema());
