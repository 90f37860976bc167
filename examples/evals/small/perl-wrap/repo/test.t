use strict;
use warnings;
use Test::More;
use lib '.';
use Wrap;

is(Wrap::wrap("one two three", 7), "one two\nthree");
is(Wrap::wrap("a b c", 1), "a\nb\nc");
is(Wrap::wrap("see incomprehensible text", 8), "see\nincomprehensible\ntext");
is(Wrap::wrap("", 5), "");
is(Wrap::wrap("one  two", 20), "one two");

done_testing();
