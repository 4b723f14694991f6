-- Five people, a phone each, Eve's with FCM. The fake provider reads its orders from the token: fa410 is dead, fa5031 answers 503 once.

SELECT postbell.device_register('ada', 'ada-phone', 'apns', 'com.example.demo',
    'ada0000000000000000000000000000000000000000000000000000000000001', 'production', name => 'Ada''s phone');
SELECT postbell.device_register('ben', 'ben-phone', 'apns', 'com.example.demo',
    'fa41000000000000000000000000000000000000000000000000000000000002', 'production', name => 'Ben''s old phone');
SELECT postbell.device_register('cleo', 'cleo-phone', 'apns', 'com.example.demo',
    'fa50310000000000000000000000000000000000000000000000000000000003', 'production', name => 'Cleo''s phone');
SELECT postbell.device_register('dan', 'dan-phone', 'apns', 'com.example.demo',
    'da00000000000000000000000000000000000000000000000000000000000004', 'production', name => 'Dan''s phone');
SELECT postbell.device_register('eve', 'eve-phone', 'fcm', 'com.example.demo',
    'eve-phone:APA91bDemo000000000000000000000000000005', name => 'Eve''s phone');
