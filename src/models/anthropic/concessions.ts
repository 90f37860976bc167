import { type Concession, withoutField } from "../http/concessions.ts";
import { asFields, asList, type Fields } from "../http/fields.ts";

/** What some model or some proxy is known to refuse, by what it says then. */
export const ANTHROPIC_CONCESSIONS: readonly Concession[] = [
  {
    name: "max_tokens",
    says: /max_tokens: \d+ > \d+/,
    without: (body, text) => {
      const most = Number(/max_tokens: \d+ > (\d+)/.exec(text)?.[1]);
      return most > 0 && Number(body["max_tokens"]) > most ? limited(body, most) : undefined;
    },
  },
  // Something before the thoughts has changed: the history was compacted, or comes from elsewhere.
  {
    name: "thoughts",
    says: /\bsignature\b|bound to a different|thinking[^]{0,80}cannot be modified/i,
    without: thoughtless,
  },
  { name: "budget", says: /adaptive thinking|thinking[^]{0,40}adaptive/i, without: otherThinking },
  {
    name: "thinking",
    says: /\bthinking\b/i,
    without: (body) => withoutField(body, "thinking"),
    note: "the model does not let thinking be chosen",
  },
  {
    name: "temperature",
    says: /\btemperature\b/i,
    without: (body) => withoutField(body, "temperature"),
    note: "the server takes no temperature for this model",
  },
  {
    name: "output_config",
    says: /output_config|output_format|structured output|json_schema/i,
    without: (body) => withoutField(body, "output_config"),
    note: "the server takes no schema for the answer",
  },
  { name: "cache_control", says: /cache_control/i, without: unmarked },
];

/** Thinking has to end before the reply does. */
function limited(body: Fields, most: number): Fields {
  const thinking = asFields(body["thinking"]);
  const budget = Number(thinking?.["budget_tokens"]);
  const less = budget >= most ? { thinking: { ...thinking, budget_tokens: Math.floor(most / 2) } } : {};
  return { ...body, max_tokens: most, ...less };
}

/** Newer models choose themselves how long to think, older ones need to be told. */
function otherThinking(body: Fields): Fields | undefined {
  const type = asFields(body["thinking"])?.["type"];
  if (type === "enabled") return { ...body, thinking: { type: "adaptive", display: "summarized" } };
  if (type !== "adaptive") return undefined;
  const budget = Math.min(16_000, Math.floor(Number(body["max_tokens"]) / 2));
  return budget < 1024 ? undefined : { ...body, thinking: { type: "enabled", budget_tokens: budget } };
}

const isThought = (block: unknown): boolean =>
  /^(?:redacted_)?thinking$/.test(String(asFields(block)?.["type"]));

function thoughtless(body: Fields): Fields | undefined {
  const messages = asList(body["messages"]).map((message) => asFields(message) ?? {});
  if (!messages.some(({ content }) => asList(content).some(isThought))) return undefined;
  const without = messages.map((message) => ({
    ...message,
    content: asList(message["content"]).filter((block) => !isThought(block)),
  }));
  return { ...body, messages: without };
}

const bare = (blocks: unknown): readonly Fields[] =>
  asList(blocks).map((block) => {
    const fields = asFields(block) ?? {};
    return withoutField(fields, "cache_control") ?? fields;
  });

function unmarked(body: Fields): Fields | undefined {
  if (!JSON.stringify(body).includes('"cache_control"')) return undefined;
  return {
    ...body,
    ...("system" in body ? { system: bare(body["system"]) } : {}),
    ...("tools" in body ? { tools: bare(body["tools"]) } : {}),
    messages: asList(body["messages"]).map((message) => {
      const fields = asFields(message) ?? {};
      return { ...fields, content: bare(fields["content"]) };
    }),
  };
}
