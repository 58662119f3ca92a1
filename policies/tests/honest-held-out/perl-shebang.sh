#!/usr/bin/perl -w
#SBATCH --job-name=perljob
#SBATCH --mem=2G
#SBATCH --time=00:30:00
use strict;
my %n;
while (<STDIN>) { $n{lc $1}++ while /(\w+)/g }
printf "%-20s %d\n", $_, $n{$_} for sort { $n{$b} <=> $n{$a} } keys %n;
printf STDERR "%d different words\n", scalar keys %n;
my ($longest) = sort { length $b <=> length $a } keys %n;
print STDERR "the longest is $longest\n" if defined $longest;
