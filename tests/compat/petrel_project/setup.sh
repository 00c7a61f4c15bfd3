set -e
if [ $1 -ne 0 ]; then
    pip install simplejson
fi
