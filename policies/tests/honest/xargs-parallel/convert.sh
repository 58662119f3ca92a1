#!/bin/bash
in=$1
ffmpeg -loglevel error -y -i "$in" -ar 16000 "wav16/$(basename "$in")"
