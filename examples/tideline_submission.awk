# A player of Tideline 2 in awk: counters for each hour of the day, 5% random arms. It reads exported
# worlds alone, and of each row only the reward of the arm that it chose, when it has arrived:
#
#   tidepull benchmark export worlds --quick
#   awk -f examples/tideline_submission.awk worlds/*.csv > arms.csv
#   tidepull benchmark score arms.csv --quick

BEGIN { FS = ","; srand(1); print "world,seed,round,arm" }

FNR == 1 {
    delete sum; delete count; delete due; delete column
    for (i = 1; i <= NF; i++) column[$i] = i
    for (arms = 0; ("reward_" arms) in column; arms++);
    name = FILENAME; sub(/.*\//, "", name); sub(/\.csv$/, "", name)
    seed = name; sub(/.*-/, "", seed); sub(/-[0-9]+$/, "", name)
    next
}

{
    round = $1
    hour = ("time" in column) ? int(($column["time"] % 86400) / 3600) : 0
    if (round in due) {                      # "hour arm reward" of what has arrived, one a line
        n = split(due[round], lines, ";")
        for (i = 1; i < n; i++) {
            split(lines[i], part, " ")
            sum[part[1], part[2]] += part[3]; count[part[1], part[2]]++
        }
        delete due[round]
    }
    arm = 0; best = "none"
    for (k = 0; k < arms; k++) {
        if (!((hour, k) in count)) { arm = k; break }
        mean = sum[hour, k] / count[hour, k]
        if (best == "none" || mean > best) { best = mean; arm = k }
    }
    if (rand() < 0.05) arm = int(rand() * arms)
    known = round + 1 + $column["wait_" arm]  # before this choice
    due[known] = due[known] hour " " arm " " $column["reward_" arm] ";"
    print name "," seed "," round "," arm
}
