"""The Tidegate operator: it observes StreamingApps, StreamSnapshots and ControlMessages, decides, and acts."""
