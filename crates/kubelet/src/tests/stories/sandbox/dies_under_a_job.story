The sandbox of a job dies: its container is stopped, and does not restart

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}

at 20s  sandbox dies
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
00:20.0 then  sandbox dies
00:20.0 why   all containers have exited and none will be restarted
00:20.0 why   stops container job: the pod terminates
00:20.0 cond  PodReadyToStartContainers False
00:20.0 event Normal Killing job: Stopping container job
00:20.0 call  StopContainer job#0, grace 30 s
00:20.0 proc  job#0 gets SIGTERM
00:20.0 proc  job#0 exits 143 (Error)
00:20.0 state Failed: job Error(143)
00:20.0 cond  Ready False, PodFailed
