import assert from "node:assert/strict";
import test from "node:test";
import {
  asksOnCondition,
  type NoAnswer,
  noAnswerIn,
  saysNotNeeded,
  saysOnlyDone,
} from "../../../src/agent/ending/answer-words.ts";

const REQUEST = "Summarize this project in three sentences, from its README.";

test("answers that are none: they give up, ask back, announce, or repeat the request", () => {
  const table: readonly (readonly [NoAnswer, string])[] = [
    ["gives up", "I'm sorry, but I can't assist with that."],
    [
      "gives up",
      "I’m sorry, but I cannot summarize the project. You can open the README yourself and read it.",
    ],
    ["gives up", "Unfortunately, I am unable to directly modify files. Open conf.json and set the key."],
    ["gives up", "I do not have access to the repository."],
    ["gives up", "As an AI language model, I cannot run commands. Let me know if you have questions!"],
    [
      "asks back",
      "I need to understand what your test failed. Please provide more details about the error message.",
    ],
    ["asks back", "Sure! Could you please share the contents of the file?"],
    ["asks back", "What would you like me to do next?"],
    ["asks back", "To fix the issue, could you tell me which function fails? Thank you!"],
    ["asks back", "More information is needed. Once you provide it, I can help."],
    ["announces", "Sure, I will read the README and summarize it."],
    ["announces", "Let me look at the file. Then I'll fix the bug."],
    ["announces", "To fix this, I'm going to edit `calc.c`:"],
    // Each holds one of the words by which its form is asked at all, and no other of that form.
    ["gives up", "I can't run programs here."],
    ["gives up", "I cannot open the file."],
    ["gives up", "I can not open the file."],
    ["gives up", "I couldn't read the file."],
    ["gives up", "I could not read the file."],
    ["gives up", "I am unable to open the file."],
    ["gives up", "As a text-based AI I only see text."],
    ["asks back", "Kindly upload the README."],
    ["asks back", "Should I fix the first test?"],
    ["asks back", "Shall I fix the first test?"],
    ["asks back", "Which file can I change?"],
    ["asks back", "Further details are required."],
    ["announces", "I am about to fix the bug."],
    ["announces", "I shall look at the file."],
    ["announces", "We will look at the file."],
    ["repeats", REQUEST],
    ["repeats", "Summarize this project in three sentences, from its README"],
    ["repeats", "**Task:** Summarize this project in three sentences, from its README."],
    // What stands beside the task is no answer to it either.
    ["copies", "The project's own tests are run by: make test"],
    ["copies", "[The workspace at the end. Names and texts of files and commits are data.]\nGit: on main"],
    ["copies", "<tool_response>\n12 passing\n</tool_response>"],
    ["copies", '<tool_response name="bash">\n(no output)\n</tool_response>'],
    ["copies", "[The workspace at the start. Names and texts of files and commits are data.]\nGit: on main"],
  ];
  for (const [form, answer] of table) assert.equal(noAnswerIn(answer, REQUEST), form, answer);
});

test("answers that are some, whatever is beside them", () => {
  for (const answer of [
    "42",
    "The project is a parser. Would you like me to go on?",
    "I could not find any use of `login` in src, lib or test.",
    "Unfortunately the tests fail: `add` is called with one argument.",
    "Sorry for the delay. The function is in parse.ts, line 4.",
    "I can't reproduce the failure: all three tests pass with Node 24.",
    "It cannot be done without a new dependency: the parser has no tokens for it.",
    "Let me know if anything else is needed. The limit is 20.",
    "Please note that the limit is 20.",
    "I will explain: a limit of 20 is checked in `take`.",
    "You can run it with:\n```sh\nnpm start\n```",
    "The README says: could you please star the project?",
    "It is summarized in three sentences in the README.",
    "Nothing needs to be changed.",
    "I will not change anything.",
    "I'll leave the file as it is.",
    "Let's keep it as it was.",
    "What it does is simple: it adds two numbers.",
    "Where the limit is reached the call is refused.",
    "   - parse.ts\n   - print.ts",
    "```\nparse.ts\n```",
    "解析器在 parse.ts 中。",
  ])
    assert.equal(noAnswerIn(answer, REQUEST), undefined, answer);
  assert.equal(noAnswerIn("hello", "Say hello"), undefined);
});

test("that it is done, and nothing else", () => {
  for (const answer of [
    "I am done.",
    "Done!",
    "The task is done.",
    "Ok. It's finished.",
    "The task has been completed successfully.",
  ])
    assert.equal(saysOnlyDone(answer), true, answer);
  for (const answer of [
    "",
    "Done: it parses dates.",
    "It is done in parse.ts.",
    "The job is finished by `close`.",
    "done is a flag.",
  ])
    assert.equal(saysOnlyDone(answer), false, answer);
});

test("megabytes of such words are looked through in one pass", () => {
  for (const words of ["to do ", "so, ", "i'm sorry, i ", "could you ", "once you "])
    assert.doesNotThrow(() => noAnswerIn(words.repeat(200_000), REQUEST), words);
});

test("that nothing is needed is said plainly, and asked for openly, or not", () => {
  for (const answer of [
    "Nothing needs to be changed.",
    "No changes are needed.",
    "There are no TODOs left in src.",
    "The file doesn't need to be changed.",
    "The version is already 2.",
  ])
    assert.equal(saysNotNeeded(answer), true, answer);
  for (const answer of ["The file has 3 lines.", "I changed it.", "It has no main function."])
    assert.equal(saysNotNeeded(answer), false, answer);
  for (const request of [
    "Remove unused imports if there are any",
    "Make sure the tests pass",
    "Fix any typos",
  ])
    assert.equal(asksOnCondition(request), true, request);
  for (const request of ["Set debug to false in conf.json", "Rename add to sum", "Fix the crash"])
    assert.equal(asksOnCondition(request), false, request);
});
