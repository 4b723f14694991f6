import CNGHTTP2
import Glibc

/// The memory of a batch while any of its requests lives: requests, bytes and shared headers in one allocation whose
/// address nghttp2 may keep (NGHTTP2_NV_FLAG_NO_COPY).
struct SubmittedBatch {
    private let memory: UnsafeMutableRawPointer
    let requests: UnsafePointer<HTTPRequest>
    let bytes: UnsafePointer<UInt8>
    let headers: UnsafePointer<nghttp2_nv>
    private let firstStart: UnsafePointer<Int32>
    /// Requests without a result.
    var remaining: Int

    /// Most headers of a shared list.
    static let sharedHeadersMax = 32

    init(_ batch: borrowing HTTPRequestBatch) {
        let lists = batch.sharedHeaders
        var headerCount = 0
        var textSize = 0
        for list in lists {
            precondition(list.count <= Self.sharedHeadersMax, "too many shared headers")
            headerCount += list.count
            for header in list { textSize += header.name.utf8.count + header.value.utf8.count }
        }
        let requestsSize = MemoryLayout<HTTPRequest>.stride * batch.requests.count
        let headersSize = MemoryLayout<nghttp2_nv>.stride * headerCount
        let startsSize = MemoryLayout<Int32>.stride * (lists.count + 1)
        let size = requestsSize + headersSize + startsSize + batch.bytes.count + textSize
        memory = .allocate(byteCount: max(size, 1), alignment: 16)

        let requests = memory.bindMemory(to: HTTPRequest.self, capacity: batch.requests.count)
        batch.requests.withUnsafeBufferPointer { source in
            if let base = source.baseAddress { requests.initialize(from: base, count: source.count) }
        }
        let headers = (memory + requestsSize).bindMemory(to: nghttp2_nv.self, capacity: headerCount)
        let starts = (memory + requestsSize + headersSize).bindMemory(to: Int32.self, capacity: lists.count + 1)
        let bytes = (memory + requestsSize + headersSize + startsSize)
            .bindMemory(to: UInt8.self, capacity: batch.bytes.count + textSize)
        batch.bytes.withUnsafeBufferPointer { source in
            if let base = source.baseAddress { bytes.initialize(from: base, count: source.count) }
        }
        self.requests = UnsafePointer(requests)
        self.headers = UnsafePointer(headers)
        self.bytes = UnsafePointer(bytes)
        firstStart = UnsafePointer(starts)
        remaining = batch.requests.count
        Self.lay(lists, headers: headers, starts: starts, text: bytes + batch.bytes.count)
    }

    /// Writes the lists one after the other: entry i of `starts` is where list i begins, the last one where all end.
    private static func lay(
        _ lists: [[HTTPHeader]], headers: UnsafeMutablePointer<nghttp2_nv>, starts: UnsafeMutablePointer<Int32>,
        text: UnsafeMutablePointer<UInt8>
    ) {
        var next = 0
        var end = text
        func write(_ string: String) -> UnsafeMutablePointer<UInt8> {
            let start = end
            for byte in string.utf8 {
                end.initialize(to: byte)
                end += 1
            }
            return start
        }
        for (index, list) in lists.enumerated() {
            (starts + index).initialize(to: Int32(next))
            for header in list {
                let name = write(header.name)
                let value = write(header.value)
                let field = nghttp2_nv(
                    name: name, value: value, namelen: header.name.utf8.count, valuelen: header.value.utf8.count,
                    flags: header.isSensitive ? FieldFlags.unindexed : FieldFlags.indexed)
                (headers + next).initialize(to: field)
                next += 1
            }
        }
        (starts + lists.count).initialize(to: Int32(next))
    }

    /// Where the shared list `index` begins in `headers`.
    func headerStart(_ index: Int) -> Int { Int(firstStart[index]) }

    /// The number of headers in the shared list `index`.
    func headerCount(_ index: Int) -> Int { Int(firstStart[index + 1] - firstStart[index]) }

    /// Gives the memory back; nobody may hold an address into it any more.
    func release() { memory.deallocate() }
}

/// Flags of a header for nghttp2. Names and values stay where they are until the frame is made, so none is copied.
enum FieldFlags {
    private static let uncopied =
        UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue) | UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)
    /// May enter the peer's HPACK table: for values that come again.
    static let indexed = uncopied
    /// Must not: for values that never come again, which would only push others out, and for secrets (RFC 7541 7.1.3).
    static let unindexed = uncopied | UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
}
