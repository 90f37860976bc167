/** How the reason of a run that ended with 0 begins where nothing was missing; what was proven, or not, stands behind it. */
export const PLAIN_ENDING = "The model gave its answer";

/** The same of one that looked and changed nothing: many a question reads like a request for a change. */
export const ONLY_LOOKED = "The model changed nothing. It looked at ";

/** Is there nothing in the reason of a good end that somebody who wants few words would want to know? */
export function isPlainEnding(reason: string): boolean {
  if (reason === "" || reason === `${PLAIN_ENDING}.`) return true;
  const begins = reason.startsWith(`${PLAIN_ENDING}; verified by \``) || reason.startsWith(ONLY_LOOKED);
  return begins && !reason.includes("; it says that tests pass");
}
