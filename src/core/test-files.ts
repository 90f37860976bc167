const TESTS =
  /(?:_test\.(?:go|py|rb|exs)|(?:^|\/)test_[^/]*\.py|[.-](?:test|spec)\.[cm]?[jt]sx?|Tests?\.(?:java|kt|cs|php|swift)|_spec\.rb)$/;
const SOURCE = /\.(?:[cm]?[jt]sx?|py|rs|rb|php|java|kt|go|c|cc|cpp)$/;
const IN_TESTS = /(?:^|\/)(?:tests?|__tests__|spec)\//;

/** By the names that test runners look for. */
export const isTest = (path: string): boolean =>
  TESTS.test(path) || (SOURCE.test(path) && IN_TESTS.test(path));

/** Whatever lies where tests are: what they compare with, what they have in common, and programs that are one by their name. */
const MEASURES =
  /(?:^|\/)(?:tests?|__tests__|__snapshots__|spec|specs|fixtures|testdata|t)\/|(?:^|\/)(?:conftest\.py|tests?\.\w+)$|(?:^|[/_.-])tests?[_.-][^/]*$|[_-]tests?\.\w+$|\.(?:snap|bats|t)$|^(?:scripts\/|tools\/|ci\/)?(?:checks?|verify)\.\w+$/i;

/** By names that say how tests are run, or that their runner loads by itself. */
const RUNS_TESTS =
  /(?:^|\/)(?:conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|\.mocharc\.\w+|(?:jest|vitest|karma|ava|playwright)\.config\.\w+)$/;

const SHADOWS = /^(?:unittest|pytest|sitecustomize|usercustomize)(?:\.py$|\/)/;

/** By its name it is taken for the runner of tests, or is loaded before it. */
export const isInPlaceOfRunner = (path: string): boolean => SHADOWS.test(path);

/** It decides which tests are run, and what becomes of them. */
export const isRunnerFile = (path: string): boolean => RUNS_TESTS.test(path) || SHADOWS.test(path);

/** By which the work of others is measured: a test, what a test is made of, or what runs it. */
export const isOfTests = (path: string): boolean => isTest(path) || MEASURES.test(path) || isRunnerFile(path);
