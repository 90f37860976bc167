#!/bin/sh
# backup.sh FROM TO: copies a file by way of TO.part
cp "$1" "$2.part"
mv "$2.part" "$2"
echo "copied"
