# Reads the record of a run, and prints a table of it. It fails where a test failed, and where
# nothing was checked, unless only `some` tests were asked for.

BEGIN {
  FS = "\t"
  columns = split("token bucket|sliding log|sliding counter|fixed window|calendar|mixed", column, "|")
}

$1 == "row" { row[++rows] = $2 }
$1 == "checked" { checked[$2, $3] += $4; know($3) }
$1 == "failed" { failed[$2, $3] = 1; know($3) }
$1 == "tests" { ran[$2] = 1; passed[$2] += $3; lost[$2] += $4 }
$1 == "skipped" { skipped[$2]++; skips[++notes] = $2 ": " $3 ": " $4 }

function know(name, at) {
  for (at = 1; at <= columns; at++) if (column[at] == name) return
  column[++columns] = name
}

function grouped(number, text) {
  text = sprintf("%d", number)
  while (match(text, /^[0-9]+[0-9][0-9][0-9]($|,)/)) {
    sub(/[0-9][0-9][0-9]($|,)/, ",&", text)
  }
  return text
}

function cell(store, name) {
  if ((store, name) in failed) {
    bad = 1
    return "FAILED"
  }
  if (checked[store, name] > 0) return grouped(checked[store, name]) " ok"
  if (some != "") return "-"
  bad = 1
  return "NOTHING"
}

function outcome(store, text) {
  if (!ran[store]) {
    bad = 1
    return "DID NOT RUN"
  }
  text = grouped(passed[store] - skipped[store]) " passed"
  if (skipped[store]) text = text ", " skipped[store] " skipped"
  if (lost[store]) {
    bad = 1
    text = lost[store] " FAILED, " text
  }
  return text
}

END {
  print "Decisions that were compared with what they must be, and all tests:"
  print ""
  # Cells first, then as wide as the widest of them.
  text[0, 0] = "store"
  for (at = 1; at <= columns; at++) text[0, at] = column[at]
  text[0, columns + 1] = "tests"
  for (n = 1; n <= rows; n++) {
    text[n, 0] = row[n]
    for (at = 1; at <= columns; at++) text[n, at] = cell(row[n], column[at])
    text[n, columns + 1] = outcome(row[n])
  }
  for (n = 0; n <= rows; n++) {
    for (at = 0; at <= columns + 1; at++) {
      if (length(text[n, at]) > width[at]) width[at] = length(text[n, at])
    }
  }
  for (n = 0; n <= rows; n++) {
    line = sprintf("%-" width[0] "s", text[n, 0])
    for (at = 1; at <= columns; at++) line = line sprintf("  %" width[at] "s", text[n, at])
    print line "  " text[n, columns + 1]
  }
  if (notes) print ""
  for (n = 1; n <= notes; n++) print "skipped on " skips[n]
  exit bad
}
