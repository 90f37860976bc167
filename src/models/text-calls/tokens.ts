/** Tokens of the families. Longer ones stand before their own beginnings. */

/** What opens a call for every family that wraps its calls. */
export const OPENERS: readonly string[] = [
  "<tool_call>", "<tool_calls>", "<toolcall>", "<TOOLCALL>", "<tool-call>", "<tools>",
  "<function_call>", "<functioncall>", "<function_calls>", "<antml:function_calls>",
  "<seed:tool_call>", "<minimax:tool_call>",
  "<|tool_call|>", "<|tool_calls|>", "<|tool_call>", "<|tool_call_start|>", "<|tool_calls_section_begin|>",
  "<|tool_call_begin|>", "<start_function_call>",
  "<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>",
  "[TOOL_REQUEST]", "[TOOL_CALL]", "[TOOL_CALLS]",
  "<|START_ACTION|>", "<|action_start|>", "<|plugin|>", "<|python_tag|>", "<|python_start|>",
];

export const CLOSERS: readonly string[] = [
  "</tool_call>", "</tool_calls>", "</toolcall>", "</TOOLCALL>", "</tool-call>", "</tools>",
  "</function_call>", "</functioncall>", "</function_calls>", "</antml:function_calls>",
  "</seed:tool_call>", "</minimax:tool_call>",
  "<|/tool_call|>", "</|tool_call|>", "<tool_call|>", "<|tool_call_end|>", "<|tool_calls_section_end|>",
  "<end_function_call>", "</｜DSML｜function_calls>", "</｜DSML｜tool_calls>",
  "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
  "[END_TOOL_REQUEST]", "[/TOOL_REQUEST]", "[/TOOL_CALL]", "[/TOOL_CALLS]",
  "<|END_ACTION|>", "<|action_end|>", "<|python_end|>", "</function>", "</invoke>", "<|call|>",
];

/** What ends a turn; nothing of it is shown. */
export const ENDS: readonly string[] = [
  "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|eom|>", "</s>", "<|end|>", "<|return|>", "<|call|>",
  "<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<end_of_turn>", "<turn|>", "<eos>",
  "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|START_RESPONSE|>", "<|im_start|>assistant", "<|endofprompt|>", "<|observation|>",
];

/** An answer of a tool that the model invents, or a turn of somebody else. */
export const INVENTED: readonly string[] = [
  "<tool_response>", "<|tool_response>", "<tool_result>", "<function_results>", "<|tool_outputs_begin|>",
  "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "[TOOL_RESULTS]", "[TOOL_RESULT]",
  "<|im_start|>user", "<|im_start|>tool", "<|start_header_id|>", "<|START_TOOL_RESULT|>", "<start_function_response>", "<|ipython|>",
];

/** Opener and closer of thinking. */
export const THINKING: readonly (readonly [string, string])[] = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<reasoning>", "</reasoning>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
  ["<|channel>thought", "<channel|>"],
  ["◁think▷", "◁/think▷"],
];

/** What stands for shown text in HTML or an outline of examples. */
export const SHOWN: readonly (readonly [string, string])[] = [
  ["<!--", "-->"],
  ["<pre>", "</pre>"],
  ["<code>", "</code>"],
  ["<example>", "</example>"],
  ["<examples>", "</examples>"],
  ["<blockquote>", "</blockquote>"],
  ["<samp>", "</samp>"],
  ["<xmp>", "</xmp>"],
  ["<![CDATA[", "]]>"],
];

export const tokenAt = (tokens: readonly string[], text: string, at: number): string | undefined =>
  tokens.find((token) => text.startsWith(token, at));
