# Reads what `cargo test` printed, and prints how many tests passed and failed: of those that use
# a server, and of all others, which use memory or no store.

function close_target() {
  # A program that crashed says no more.
  if (target && !told) failed[row]++
}

/^ +(Running|Doc-tests) / {
  close_target()
  target = 1
  told = 0
  row = /tests\/(servers|soak|gateway)\// ? server : "memory"
}

/^test result: / {
  told = 1
  passed[row] += $4
  failed[row] += $6
}

END {
  close_target()
  for (row in passed) printf "tests\t%s\t%d\t%d\n", row, passed[row], failed[row]
  for (row in failed) if (!(row in passed)) printf "tests\t%s\t0\t%d\n", row, failed[row]
}
