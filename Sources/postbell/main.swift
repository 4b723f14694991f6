import Glibc
import Operations

let tool = CommandLineTool(
    environment: ProcessEnvironment.variables(), providers: LaneInspector(), dispatch: runDispatch)
exit(tool.run(Array(CommandLine.arguments.dropFirst())))
