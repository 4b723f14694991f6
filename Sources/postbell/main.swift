import Glibc
import Operations

let tool = CommandLineTool(
    environment: ProcessEnvironment.variables(), providers: APNSInspector(), dispatch: runDispatch)
exit(tool.run(Array(CommandLine.arguments.dropFirst())))
