package Text;
use strict;
use warnings;

# Without blanks, tabs and line ends at both ends.
sub trim {
    my ($text) = @_;
    $text =~ s/^ +//;
    return $text;
}

1;
