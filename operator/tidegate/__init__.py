"""The Tidegate operator: it observes StreamingApps, decides, and acts."""
