import Credentials
import Glibc
import Operations

// Before anything else touches OpenSSL, libpq included.
guard FreedMemory.eraseAfterOpenSSL() else { preconditionFailure("OpenSSL was used before its memory was prepared") }
let tool = CommandLineTool(
    environment: ProcessEnvironment.variables(), providers: LaneInspector(), dispatch: runDispatch)
let status = tool.run(Array(CommandLine.arguments.dropFirst()))
// Not by exit(), whose handlers take OpenSSL apart under the hands of threads that are still at work, on a connection
// that was given up, say: a few workers in a hundred ended by SIGSEGV.
fflush(nil)
_exit(status)
