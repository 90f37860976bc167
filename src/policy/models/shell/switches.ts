/** Switches of a shell that change neither how it reads words nor what programs get. */
const NAMES: ReadonlySet<string> = new Set(
  `errexit errtrace functrace hashall monitor noclobber noexec noglob notify nounset onecmd pipefail verbose
  xtrace`.split(/\s+/),
);
const LETTERS = /^[-+][befhmnuvxCET]*o?$/;

/** By its long name, as `-o` takes it. */
export const isSwitch = (name: string): boolean => NAMES.has(name);

/** By letters, as in `-eu`; an `o` at the end takes a name. */
export const areSwitches = (word: string): boolean => LETTERS.test(word);
