The sandbox of a job that is not restarted is removed, not by the agent: the job is lost, and does not run again

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}

at 20s  sandbox vanishes
until 40s
---
00:00.0 state Pending: job ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container job: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer job#0
00:00.0 call  StartContainer job#0
00:00.0 why   everything runs as specified
00:00.0 state Running: job Running
00:00.0 cond  Ready True
00:20.0 then  sandbox vanishes
00:20.0 proc  job#0 exits 137 (Error)
00:20.0 state Failed: job ContainerStatusUnknown(137)
00:20.0 cond  PodReadyToStartContainers False
00:20.0 cond  Ready False, PodFailed
