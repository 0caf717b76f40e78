"""What other tools computed from published event logs, figure by figure beside ours."""
