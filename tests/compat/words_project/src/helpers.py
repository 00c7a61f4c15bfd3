def words(line):
    return line.split()
