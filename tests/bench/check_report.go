package main

import (
	"fmt"
	"io"
)

// markdown prints what a check takes, and by how much more after many turns.
func (c checked) markdown(w io.Writer) {
	fmt.Fprintln(w, "\n| deploy check over | seconds | ms a session | CPU ms a session | peak MiB | ms a session × those of 2 turns | CPU × | MiB × |\n| --- | --: | --: | --: | --: | --: | --: | --: |")
	for _, s := range append([]checkedSet{c.One, c.Many}, c.Sets...) {
		var wall, cpu, memory string
		if few := c.Sets[0]; s.Turns > few.Turns {
			wall, cpu, memory = times(s.by(few, eachOf)), times(s.by(few, eachCPUOf)), times(s.by(few, memoryOf))
		}
		fmt.Fprintf(w, "| sessions: %d, turns of each: %d | %.2f | %s | %s | %.0f | %s | %s | %s |\n", s.Sessions, s.Turns,
			s.median(wallOf)/1000, figure("%.2f", s.median(eachOf)), figure("%.2f", s.median(eachCPUOf)), s.median(memoryOf), wall, cpu, memory)
	}
}

func wallOf(r checkRun) float64    { return r.Wall }
func eachOf(r checkRun) float64    { return r.Each }
func eachCPUOf(r checkRun) float64 { return r.EachCPU }
func memoryOf(r checkRun) float64  { return r.Memory }

// checkTarget compares sessions whose runs have come equally far and carry a checkpoint.
func (r report) checkTarget() target {
	var f finding
	if c := r.Check; c != nil {
		few, many := c.Sets[len(c.Sets)-2], c.Sets[len(c.Sets)-1]
		cpu, memory := many.by(few, eachCPUOf), many.by(few, memoryOf)
		f.add(cpu <= 1.1 && memory <= 1.1, "after %d turns %.2f times the CPU and %.2f times the memory of after %d; %d sessions in %.1f s and %.0f MiB",
			many.Turns, cpu, memory, few.Turns, c.Many.Sessions, c.Many.median(wallOf)/1000, c.Many.median(memoryOf))
	}
	return f.target("a deploy check does not grow with the length of conversations")
}
