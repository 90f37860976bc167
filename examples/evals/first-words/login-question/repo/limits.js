/** How often a user may try to log in. */
export const MAX_TRIES = 5;
