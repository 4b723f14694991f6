import Credentials
import Glibc
import Operations

// Before anything else touches OpenSSL, libpq included.
guard FreedMemory.eraseAfterOpenSSL() else { preconditionFailure("OpenSSL was used before its memory was prepared") }
let tool = CommandLineTool(
    environment: ProcessEnvironment.variables(), providers: LaneInspector(), dispatch: runDispatch)
exit(tool.run(Array(CommandLine.arguments.dropFirst())))
