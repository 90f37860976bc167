use strict;
use warnings;
use Test::More;
use lib '.';
use Tally;

is_deeply([Tally::tally("Bob", "anna", "ANNA", "bob", "Bob")], [["Bob", 3], ["anna", 2]]);
is_deeply([Tally::tally()], []);

done_testing();
