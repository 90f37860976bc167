package Ini;
use strict;
use warnings;

# { section => { key => value } }; keys before the first section are in "".
sub parse {
    my ($text) = @_;
    my %all;
    my $section = "";
    for my $line (split /\n/, $text) {
        if ($line =~ /^\[(.*)\]$/) { $section = $1; next }
        my ($key, $value) = split /=/, $line;
        $all{$section}{$key} = $value;
    }
    return \%all;
}

1;
