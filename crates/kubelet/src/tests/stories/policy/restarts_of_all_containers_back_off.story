Restarts of the whole pod back off like those of a container

pod job
  restartPolicy: Never
  containers:
  - name: worker
    image: app:1
    restartPolicy: Never
    restartPolicyRules:
    - {action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}
  - {name: helper, image: "app:1"}

first  container worker: exits 42 after 1s
until 20s
---
00:00.0 state Pending: helper ContainerCreating, worker ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container worker: it has not run yet
00:00.0 why   starts container helper: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer worker#0
00:00.0 call  StartContainer worker#0
00:00.0 call  CreateContainer helper#0
00:00.0 call  StartContainer helper#0
00:00.0 why   everything runs as specified
00:00.0 state Running: helper Running, worker Running
00:00.0 cond  Ready True
00:01.0 proc  worker#0 exits 42 (Error)
00:01.0 why   restarts all containers because container worker exited with code 42
00:01.0 state Running: helper Running, worker Error(42)
00:01.0 cond  Ready False, ContainersNotReady: containers with unready status: [worker]
00:01.0 cond  AllContainersRestarting True, RestartAllContainersStarted: container exited with restart policy rule
00:01.0 event Normal Killing helper: Stopping container helper
00:01.0 call  StopContainer helper#0, grace 2 s
00:01.0 proc  helper#0 gets SIGTERM
00:01.0 proc  helper#0 exits 143 (Error)
00:01.0 state Running: helper Error(143), worker Error(42)
00:01.0 call  RemoveContainer helper#0
00:01.0 call  RemoveContainer worker#0
00:01.0 why   starts container worker: all containers are restarted
00:01.0 why   starts container helper: all containers are restarted
00:01.0 state Running: helper RestartingAllContainers after RestartingAllContainers(143), worker RestartingAllContainers after Error(42)
00:01.0 cond  AllContainersRestarting False
00:01.0 call  CreateContainer worker#1
00:01.0 call  StartContainer worker#1
00:01.0 call  CreateContainer helper#1
00:01.0 call  StartContainer helper#1
00:01.0 why   everything runs as specified
00:01.0 state Running: helper Running x1, worker Running x1
00:01.0 cond  Ready True
00:02.0 proc  worker#1 exits 42 (Error)
00:02.0 why   restarts all containers because container worker exited with code 42
00:02.0 why   container worker is in back-off until 00:12.0
00:02.0 state Running: helper Running x1, worker Error(42) x1
00:02.0 cond  Ready False, ContainersNotReady: containers with unready status: [worker]
00:02.0 cond  AllContainersRestarting True, RestartAllContainersStarted: container exited with restart policy rule
00:12.0 event Normal Killing helper: Stopping container helper
00:12.0 call  StopContainer helper#1, grace 2 s
00:12.0 proc  helper#1 gets SIGTERM
00:12.0 proc  helper#1 exits 143 (Error)
00:12.0 state Running: helper Error(143) x1, worker Error(42) x1
00:12.0 call  RemoveContainer helper#1
00:12.0 call  RemoveContainer worker#1
00:12.0 why   starts container worker: all containers are restarted
00:12.0 why   starts container helper: all containers are restarted
00:12.0 state Running: helper RestartingAllContainers x1 after RestartingAllContainers(143), worker RestartingAllContainers x1 after Error(42)
00:12.0 cond  AllContainersRestarting False
00:12.0 call  CreateContainer worker#2
00:12.0 call  StartContainer worker#2
00:12.0 call  CreateContainer helper#2
00:12.0 call  StartContainer helper#2
00:12.0 why   everything runs as specified
00:12.0 state Running: helper Running x2, worker Running x2
00:12.0 cond  Ready True
00:13.0 proc  worker#2 exits 42 (Error)
00:13.0 why   restarts all containers because container worker exited with code 42
00:13.0 why   container worker is in back-off until 00:33.0
00:13.0 state Running: helper Running x2, worker Error(42) x2
00:13.0 cond  Ready False, ContainersNotReady: containers with unready status: [worker]
00:13.0 cond  AllContainersRestarting True, RestartAllContainersStarted: container exited with restart policy rule
