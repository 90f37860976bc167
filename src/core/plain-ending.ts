/** Begins the reason of a run that ended with 0 and lacked nothing; what was verified, or not, follows. */
export const PLAIN_ENDING = "The model gave its answer";

/** The same for a run that looked and changed nothing: many a question reads like a request for a change. */
export const ONLY_LOOKED = "The model changed nothing. It looked at ";

/** Whether the reason of a successful run holds nothing that a person who wants few words would need to know. */
export function isPlainEnding(reason: string): boolean {
  if (reason === "" || reason === `${PLAIN_ENDING}.`) return true;
  const begins = reason.startsWith(`${PLAIN_ENDING}; verified by \``) || reason.startsWith(ONLY_LOOKED);
  return begins && !reason.includes("; it says that tests pass");
}
