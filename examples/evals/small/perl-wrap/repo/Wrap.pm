package Wrap;
use strict;
use warnings;

# The text in lines of at most $width characters.
sub wrap {
    my ($text, $width) = @_;
    return join "\n", $text =~ /(.{1,$width})/g;
}

1;
