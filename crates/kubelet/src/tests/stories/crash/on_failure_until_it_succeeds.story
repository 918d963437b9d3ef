With restartPolicy OnFailure a job restarts until it succeeds; then the pod has succeeded

pod job
  restartPolicy: OnFailure
  containers:
  - {name: job, image: "app:1"}

first  container job: exits 1 after 2s; then exits 1 after 2s; then exits 0 after 2s
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
00:02.0 proc  job#0 exits 1 (Error)
00:02.0 why   starts container job: it exited with code 1
00:02.0 state Running: job Error(1)
00:02.0 cond  Ready False, ContainersNotReady: containers with unready status: [job]
00:02.0 call  CreateContainer job#1
00:02.0 call  StartContainer job#1
00:02.0 why   everything runs as specified
00:02.0 state Running: job Running x1
00:02.0 cond  Ready True
00:04.0 proc  job#1 exits 1 (Error)
00:04.0 why   container job is in back-off until 00:14.0
00:04.0 why   removes a dead container
00:04.0 state Running: job CrashLoopBackOff x1 after Error(1)
00:04.0 cond  Ready False, ContainersNotReady: containers with unready status: [job]
00:04.0 event Warning BackOff job: Back-off restarting failed container job in pod job-n_default(UID)
00:04.0 call  RemoveContainer job#0
00:14.0 why   starts container job: it exited with code 1
00:14.0 call  CreateContainer job#2
00:14.0 call  StartContainer job#2
00:14.0 why   everything runs as specified
00:14.0 state Running: job Running x2
00:14.0 cond  Ready True
00:16.0 proc  job#2 exits 0 (Completed)
00:16.0 why   all containers have exited and none will be restarted
00:16.0 why   removes a dead container
00:16.0 state Succeeded: job Completed(0) x2
00:16.0 cond  Ready False, PodCompleted
00:16.0 call  StopPodSandbox 0
00:16.0 call  RemoveContainer job#1
00:16.0 cond  PodReadyToStartContainers False
