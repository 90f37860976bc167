import type { PlannedStep } from "./step-plan.ts";

/** Files that no command runs. */
const WORDS =
  /(?:^|\/)(?:docs?|\.github\/ISSUE_TEMPLATE)\/|\.(?:md|mdx|rst|adoc|txt|png|jpe?g|gif|svg|webp|ico|pdf)$|(?:^|\/)(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS|CHANGELOG|CODEOWNERS)[\w.-]*$/i;
const RUN_ALL_THE_SAME = /(?:^|\/)(?:requirements|constraints)[\w.-]*\.txt$|(?:^|\/)CMakeLists\.txt$/;
const TESTS =
  /(?:^|\/)(?:tests?|__tests__|specs?|fixtures?|testdata)\/|[._-](?:test|spec)\.\w+$|(?:^|\/)test_[^/]*$|(?:^|\/)conftest\.py$/;

/** Whether a command may do something else after a change of these files. Rather one too many. */
export function touches(step: PlannedStep, changed: readonly string[]): boolean {
  if (step.what === "given") return true;
  const below = changed.filter((file) => step.folder === "" || file.startsWith(`${step.folder}/`));
  if (step.from !== null && below.includes(step.from)) return true;
  const code = below.filter((file) => !WORDS.test(file) || RUN_ALL_THE_SAME.test(file));
  return step.what === "test" ? code.length > 0 : code.some((file) => !TESTS.test(file));
}
